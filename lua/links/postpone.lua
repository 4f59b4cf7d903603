-- Keeps parcels in the outbox that their place does not understand, and has them wait: LinksRole.postpone.
--
-- KEYS
--   1 outbox
-- ARGV
--   1 until: seconds
--   2… key and body of each parcel
-- Returns
--   how many wait: not one that was removed, or has changed since

local call = redis.call
local postponed = 0
for i = 2, #ARGV, 2 do
  local stored = call('HGET', KEYS[1], ARGV[i])
  local read, parcel = pcall(cmsgpack.unpack, stored or '')
  if read and type(parcel) == 'table' and parcel[2] == ARGV[i + 1] then
    parcel[5] = tonumber(ARGV[1])
    call('HSET', KEYS[1], ARGV[i], cmsgpack.pack(parcel))
    postponed = postponed + 1
  end
end
return postponed
