-- Gives tokens of a semaphore other names and another deadline: LimitingRole.moveTokens. A call that is sent again finds the new names.
--
-- KEYS
--   1 semaphore
-- ARGV
--   1 deadline: seconds
--   2… pairs: the name so far, and the new one
-- Returns
--   the indexes of the pairs of which there is no token

local call, gone = redis.call, {}
for i = 2, #ARGV, 2 do
  local from, to = ARGV[i], ARGV[i + 1]
  if call('ZSCORE', KEYS[1], from) or call('ZSCORE', KEYS[1], to) then
    call('ZREM', KEYS[1], from)
    call('ZADD', KEYS[1], ARGV[1], to)
  else
    gone[#gone + 1] = i / 2
  end
end
return gone
