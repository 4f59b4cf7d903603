-- Lets the lines of a fair queue have their turns whose keys have been lost: MaintenanceRole.repairLines, some lines.
--
-- KEYS
--   1 fairRing
--   2 fairHeld
--   3… keys of lines
-- ARGV
--   1 linePrefix
-- Returns
--   how many keys of lines were in neither

local call, try = redis.call, redis.pcall

call('ZCARD', KEYS[2])
local first, found = call('ZRANGE', KEYS[1], 0, 0, 'WITHSCORES')[2] or '0', 0
for i = 3, #KEYS do
  local key, size = string.sub(KEYS[i], #ARGV[1] + 1), try('ZCARD', KEYS[i])
  if type(size) == 'number' and size > 0 and not call('ZSCORE', KEYS[2], key) then
    found = found + call('ZADD', KEYS[1], 'NX', first, key)
  end
end
return found
