-- Publishes the entries of a scheduler: SchedulingRole.writeSchedulerEntries.
--
-- KEYS
--   1 schedulerEntries
-- ARGV
--   1 ttl: seconds
--   2… each SchedulerEntry
-- Returns
--   nothing
--
-- Uses shared/spread.lua

local entries = {}
for i = 2, #ARGV do
  entries[i - 1] = ARGV[i]
end
redis.call('DEL', KEYS[1])
if #entries > 0 then
  spread('RPUSH', KEYS[1], entries)
  redis.call('EXPIRE', KEYS[1], ARGV[1])
end
return nil
