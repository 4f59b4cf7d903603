-- Takes tokens of a semaphore, one per task, or moves the deadline of the token that a task has: LimitingRole.acquireTokens.
-- A holder that asks again keeps its token. asynq refuses it while all are taken, so that a lost reply would cost a token.
--
-- KEYS
--   1 semaphore
-- ARGV
--   1 tokens
--   2 now: seconds
--   3 deadline: seconds
--   4… the ids of the tasks
-- Returns
--   the indexes of the tasks without a token

local call = redis.call

call('ZREMRANGEBYSCORE', KEYS[1], '-inf', '(' .. ARGV[2])
local free, refused = tonumber(ARGV[1]) - call('ZCARD', KEYS[1]), {}
for i = 4, #ARGV do
  local has = call('ZSCORE', KEYS[1], ARGV[i])
  if has or free > 0 then
    call('ZADD', KEYS[1], ARGV[3], ARGV[i])
    if not has then free = free - 1 end
  else
    refused[#refused + 1] = i - 3
  end
end
return refused
