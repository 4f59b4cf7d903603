-- Stores the checkpoints of steps that call tasks, and creates these: CheckpointsRole.call. shared/step-calls.lua has what follows.
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
--   9 lease
--   10 task
-- ARGV
--   1 taskPrefix
--   2 now: seconds
--   3 nowNanos
--   4 id
--   5… the fences: see shared/fence.lua; then six values per task: its answer's name, field and value of the checkpoint, queue, JSON as links.lua has it, message
-- Returns
--   the parcels, packed as in deliver.lua, or 0 when the task is not the caller's and nothing was written
--
-- Uses shared/fence.lua

L.open(ARGV[1], ARGV[2], ARGV[3])
local id, hash = ARGV[4], KEYS[10]
local state = redis.call('HGET', hash, 'state')
local missing, _, at = missing_leases(KEYS[9], { id }, 5)
if missing[1] or state ~= 'active' then return 0 end
for i = at, #ARGV, 6 do
  -- Of a task that is only asked for, `json` has its id alone, and `message` is ''.
  local answer, field, checkpoint, queue, json, message = unpack(ARGV, i, i + 5)
  local task, w = cjson.decode(json), { k = 's', to = L.place, id = id, answer = answer }
  redis.call('HSET', hash, field, checkpoint)
  if message == '' then
    L.ask_for_task(queue, task.id, w)
  else
    redis.call('HDEL', hash, 'answer:' .. answer) -- to a task that had the id before
    L.call_task(queue, task, w, message)
  end
end
L.work()
return L.parcels()
