-- Reads how far a periodic entry has got, and begins it when that is unknown: SchedulingRole.openSchedule.
--
-- KEYS
--   1 schedule
-- ARGV
--   1 now: seconds
--   2 spec: a changed one begins again from now
--   3 keepFor: seconds
-- Returns
--   up to when planned times are dealt with (seconds), and the last planned time that was fired, or ''

local known = redis.call('HMGET', KEYS[1], 'mark', 'spec', 'fired')
local handled_until = known[1]
if not handled_until or (known[2] ~= ARGV[2] and tonumber(handled_until) < tonumber(ARGV[1])) then
  handled_until = ARGV[1]
end
redis.call('HSET', KEYS[1], 'mark', handled_until, 'spec', ARGV[2])
redis.call('EXPIRE', KEYS[1], ARGV[3])
return { handled_until, known[3] or '' }
