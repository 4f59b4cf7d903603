-- Notes that tasks which wait in `scheduled` join their groups: `entries` are pairs of time (seconds) and name. forward.lua reads it.
-- The key ends a day after its last time, as where only Go servers are, nobody takes anything out of it.
local function note_delayed_groups(key, now, entries)
  if #entries == 0 then return end
  local call = redis.call
  for i = 1, #entries, 2 do
    call('ZADD', key, entries[i], entries[i] .. ':' .. entries[i + 1])
  end
  local left = tonumber(call('ZRANGE', key, -1, -1, 'WITHSCORES')[2]) - tonumber(now)
  call('EXPIRE', key, string.format('%.0f', math.max(left, 0) + 86400))
end
