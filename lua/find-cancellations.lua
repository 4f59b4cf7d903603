-- Reads the cancellations that are recorded for tasks: CancellationRole.findCancellations.
--
-- KEYS
--   1 cancellations
--   2 cancellationDetails
-- ARGV
--   1 oldest: milliseconds; earlier records no longer count
--   2… ids
-- Returns
--   the details of the ids that have a record, in their order

local call = redis.call
local number, oldest, found = call('ZCARD', KEYS[1]), tonumber(ARGV[1]), {}
call('HLEN', KEYS[2])
if number == 0 then return found end
for first = 2, #ARGV, 1000 do
  local last = math.min(first + 999, #ARGV)
  local times = call('ZMSCORE', KEYS[1], unpack(ARGV, first, last))
  for i = first, last do
    local at = times[i - first + 1]
    local details = at and tonumber(at) >= oldest and call('HGET', KEYS[2], ARGV[i])
    if details then found[#found + 1] = details end
  end
end
return found
