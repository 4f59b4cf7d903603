-- Adds to the history of a periodic entry: SchedulingRole.recordEnqueueEvent.
--
-- KEYS
--   1 schedulerHistory
-- ARGV
--   1 time: seconds
--   2 event
--   3 most: how many are kept
--   4 keepFor: seconds
-- Returns
--   nothing

redis.call('ZREMRANGEBYRANK', KEYS[1], 0, -ARGV[3])
redis.call('ZADD', KEYS[1], ARGV[1], ARGV[2])
redis.call('EXPIRE', KEYS[1], ARGV[4])
return nil
