-- Corrects how many tasks wait in the lines of a fair queue, as others that delete some do not count: MaintenanceRole.repairLines, the last step.
-- With more keys than are counted here it is corrected as far as `counted` is not between what it was then and what it is now.
--
-- KEYS
--   1 fairTotal
--   2 fairRing
--   3 fairHeld
-- ARGV
--   1 linePrefix
--   2 before: the number when the count began
--   3 counted: how many tasks were found in lines since
--   4 most: up to how many keys are counted here, so that the number is exact
-- Returns
--   by how much it was changed

local call, try = redis.call, redis.pcall
local total = tonumber(call('GET', KEYS[1]) or 0) or 0
local right = total
if call('ZCARD', KEYS[2]) + call('ZCARD', KEYS[3]) <= tonumber(ARGV[4]) then
  right = 0
  for i = 2, 3 do
    local keys = call('ZRANGE', KEYS[i], 0, -1)
    for n = 1, #keys do
      local size = try('ZCARD', ARGV[1] .. keys[n])
      if type(size) == 'number' then right = right + size end
    end
  end
else
  local before, counted = tonumber(ARGV[2]), tonumber(ARGV[3])
  local least, greatest = math.min(before, total), math.max(before, total)
  if counted < least then right = total - (least - counted) end
  if counted > greatest then right = total + (counted - greatest) end
end
if right ~= total then call('SET', KEYS[1], string.format('%.0f', math.max(0, right))) end
return right - total
