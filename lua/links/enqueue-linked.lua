-- Creates tasks with links in order, all of one queue: LinksRole.enqueue.
--
-- KEYS
--   1 links
--   2 outbox
--   3 timers
--   4 waitingTasks
--   5 pending
--   6 scheduled
--   7 archived
--   8 completed
--   9… senders, when these are rows of an outbox
-- ARGV
--   1 taskPrefix
--   2 now: seconds
--   3 nowNanos
--   4… JSON and message of each task: { id, processAt, uniqueKey, uniqueTtl, watchers, after, resent, room }, see links.lua; for rows, as enqueue-rows.lua
-- Returns
--   as enqueue-rows.lua when an earlier call has brought the first row; else
--   the status of each task: 0 enqueued, 1 duplicate, 2 conflict, or, without room, -1 less how many are pending; and the parcels, packed as in deliver.lua

local STATUS = { enqueued = 0, duplicate = 1, conflict = 2 }

local senders, last, first, sender = KEYS[9]
if senders then
  last, first, sender = table.remove(ARGV), table.remove(ARGV), table.remove(ARGV)
  local highest = redis.call('HGET', senders, sender)
  if highest and tonumber(highest) >= tonumber(first) then return highest end
end
L.open(ARGV[1], ARGV[2], ARGV[3])
local tasks, statuses = {}, {}
for i = 4, #ARGV, 2 do
  local task = cjson.decode(ARGV[i])
  task.message = ARGV[i + 1]
  tasks[#tasks + 1] = task
end
if senders then redis.call('HSET', senders, sender, last) end
for i = 1, #tasks do
  local status = L.create(tasks[i])
  statuses[i] = STATUS[status] or status
  L.work()
end
return { statuses, L.parcels() }
