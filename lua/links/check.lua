-- Tells who watches tasks, if they have ended: LinksRole.check.
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
--   4… ids
-- Returns
--   the parcels, packed as in deliver.lua

L.open(ARGV[1], ARGV[2], ARGV[3])
if not L.has_links and not L.has_runs then return '' end
for i = 4, #ARGV do
  L.guard(L.notice, ARGV[i])
end
L.work()
return L.parcels()
