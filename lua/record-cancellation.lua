-- Records a cancellation, and deletes records that are too old: CancellationRole.recordCancellation.
--
-- KEYS
--   1 cancellations
--   2 cancellationDetails
-- ARGV
--   1 id
--   2 at: milliseconds
--   3 details: JSON
--   4 oldest: milliseconds; earlier records are deleted
--   5 most: how many are kept
--   6 keepFor: seconds
-- Returns
--   nothing
--
-- Uses shared/spread.lua

local call = redis.call

local function forget(ids)
  spread('ZREM', KEYS[1], ids)
  spread('HDEL', KEYS[2], ids)
end

call('HLEN', KEYS[2])
forget(call('ZRANGE', KEYS[1], '-inf', '(' .. ARGV[4], 'BYSCORE', 'LIMIT', 0, 1000))
call('ZADD', KEYS[1], ARGV[2], ARGV[1])
call('HSET', KEYS[2], ARGV[1], ARGV[3])
local surplus = call('ZCARD', KEYS[1]) - tonumber(ARGV[5])
if surplus > 0 then forget(call('ZRANGE', KEYS[1], 0, math.min(surplus, 1000) - 1)) end
for i = 1, 2 do
  call('EXPIRE', KEYS[i], ARGV[6])
end
return nil
