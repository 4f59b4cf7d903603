-- Counts what tasks have spent beyond their costs, and takes back what they have not: LimitingRole.correctCosts.
--
-- KEYS
--   1 starts
-- ARGV
--   1 window: milliseconds
--   2 nowNanos
--   3… for each task the time at which its cost counts, and the difference
-- Returns
--   nothing
--
-- Uses shared/starts.lua

local call, key, window = redis.call, KEYS[1], tonumber(ARGV[1])
local _, _, time, gone = starts_left(key, 0, window, ARGV[2])
local saving = call('HGET', key, 'saving')
local more = 0
for i = 3, #ARGV, 2 do
  local by = tonumber(ARGV[i + 1])
  if by > 0 then
    more = more + by
  else
    -- It may have left the window: then it is gone.
    local count = tonumber(call('HGET', key, ARGV[i]))
    if count then call('HSET', key, ARGV[i], string.format('%.0f', math.max(0, count + by))) end
  end
end
if more > 0 then count_starts(key, more, latest_start(math.huge, window, time, 0, 0), window, time, gone) end
if more > 0 and saving then call('HSET', key, 'saving', saving) end
