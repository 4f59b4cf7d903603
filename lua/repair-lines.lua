-- Lets the lines of a fair queue have their turns whose keys have been lost: MaintenanceRole.repairLines, some lines.
--
-- KEYS
--   1 fairRing
--   2 fairHeld
--   3 fairTotal
--   4… keys of lines
-- ARGV
--   1 linePrefix
-- Returns
--   how many keys of lines were in neither, how many tasks are in these lines, and how many are counted in all

local call, try = redis.call, redis.pcall

call('ZCARD', KEYS[2])
local total = tonumber(call('GET', KEYS[3]) or 0) or 0
local first, found = call('ZRANGE', KEYS[1], 0, 0, 'WITHSCORES')[2] or '0', 0
local tasks = 0
for i = 4, #KEYS do
  local key, size = string.sub(KEYS[i], #ARGV[1] + 1), try('ZCARD', KEYS[i])
  if type(size) == 'number' and size > 0 then
    tasks = tasks + size
    if not call('ZSCORE', KEYS[2], key) then found = found + call('ZADD', KEYS[1], 'NX', first, key) end
  end
end
return { found, tasks, total }
