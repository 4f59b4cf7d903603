-- Registers waiting tasks with tasks of a queue: LinksRole.watch.
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
-- ARGV
--   1 taskPrefix
--   2 now: seconds
--   3 nowNanos
--   4… JSON of each request: { id, w = { k, to, id, n }, missing = 'succeeded' or 'failed', if given }
-- Returns
--   '1' per request whose task exists, else '0'; and the parcels, packed as in deliver.lua

L.open(ARGV[1], ARGV[2], ARGV[3])
local requests, found = {}, {}
for i = 4, #ARGV do
  requests[#requests + 1] = cjson.decode(ARGV[i])
end
for i = 1, #requests do
  local request = requests[i]
  local exists = L.watch(request.id, request.w, request.missing)
  if not exists and request.missing then
    L.tell.w(request.w, request.id, request.missing == 'succeeded', 'it does not exist')
    exists = true
  end
  found[i] = exists and '1' or '0'
end
L.work()
return { table.concat(found), L.parcels() }
