-- Reads how far a periodic entry has got, and begins it where that is unknown: SchedulingBroker.openSchedule.
--
-- KEYS
--   1 schedule
-- ARGV
--   1 now: seconds
--   2 spec: another one than before begins anew
--   3 keepFor: seconds
-- Returns
--   the mark (seconds), and the last planned time that was dealt with or an empty text

local known = redis.call('HMGET', KEYS[1], 'mark', 'spec', 'fired')
local mark = known[1]
if not mark or (known[2] ~= ARGV[2] and tonumber(mark) < tonumber(ARGV[1])) then mark = ARGV[1] end
redis.call('HSET', KEYS[1], 'mark', mark, 'spec', ARGV[2])
redis.call('EXPIRE', KEYS[1], ARGV[3])
return { mark, known[3] or '' }
