-- Reads keys of a fair queue: FairKeysRole.describe, some keys.
--
-- KEYS
--   1 fairHeld
--   2 fairShares
--   3 lease
-- ARGV
--   1 taskPrefix
--   2 now: seconds
--   3 nowNanos
--   4 linePrefix
--   5 runningPrefix
--   6 ratePrefix
--   7 named: of how many tasks with a slot the ids are returned
--   8… keys
-- Returns
--   of each key: how many tasks wait, its share ('' for the usual one), how many slots are taken, when it is looked at again in milliseconds ('' when
--   it is not held), milliseconds until more may start (0 while some may), and ids of tasks with a slot
--
-- Uses shared/starts.lua
-- Uses shared/share-limits.lua
-- Uses shared/slots.lua

local call, try = redis.call, redis.pcall
call('ZCARD', KEYS[3])
local now_ms, read = tonumber(string.sub(ARGV[3], 1, -7)), {}

local function number_of(command, key)
  local number = try(command, key)
  return type(number) == 'number' and number or 0
end

for i = 8, #ARGV do
  local key = ARGV[i]
  local waiting = number_of('ZCARD', ARGV[4] .. key)
  local text = waiting > 0 and call('HGET', KEYS[2], key) or ''
  local _, _, rate, window = share_limits(text)
  local ids = try('SMEMBERS', ARGV[5] .. key)
  local taken = ids.err and {} or divide_slots(ids, KEYS[3], ARGV[1], tonumber(ARGV[2]))
  local starts, wait = ARGV[6] .. window .. ':' .. key, 0
  if rate > 0 and number_of('HLEN', starts) > 0 then
    local left, fewer_in = starts_left(starts, rate, window, ARGV[3])
    if left == 0 then wait = fewer_in end
  end
  local named = {}
  for n = 1, math.min(#taken, tonumber(ARGV[7])) do
    named[n] = taken[n]
  end
  local n = #read
  read[n + 1], read[n + 2], read[n + 3] = waiting, text, #taken
  local look_at = call('ZSCORE', KEYS[1], key)
  read[n + 4], read[n + 5], read[n + 6] = look_at and tonumber(look_at) > now_ms and look_at or '', wait, named
end
return read
