-- Takes a token of a semaphore, or moves the deadline of the one the task has: LimitingBroker.acquireToken.
-- In asynq a holder that asks again while all are taken is refused; then a reply that was lost would cost a token.
--
-- KEYS
--   1 semaphore
-- ARGV
--   1 id
--   2 tokens
--   3 now: seconds
--   4 deadline: seconds
-- Returns
--   1, or 0 when all tokens are taken

local call = redis.call

call('ZREMRANGEBYSCORE', KEYS[1], '-inf', '(' .. ARGV[3])
if not call('ZSCORE', KEYS[1], ARGV[1]) and call('ZCARD', KEYS[1]) >= tonumber(ARGV[2]) then return 0 end
call('ZADD', KEYS[1], ARGV[4], ARGV[1])
return 1
