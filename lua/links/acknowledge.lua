-- Removes parcels from the outbox that were delivered, unless they have changed since: LinksRole.acknowledge.
--
-- KEYS
--   1 outbox
-- ARGV
--   1… key and body of each parcel
-- Returns
--   how many were removed

local call = redis.call
local removed = {}
for i = 1, #ARGV, 2 do
  local stored = call('HGET', KEYS[1], ARGV[i])
  local read, parcel = pcall(cmsgpack.unpack, stored or '')
  if read and type(parcel) == 'table' and parcel[2] == ARGV[i + 1] then removed[#removed + 1] = ARGV[i] end
end
for first = 1, #removed, 1000 do
  call('HDEL', KEYS[1], unpack(removed, first, math.min(first + 999, #removed)))
end
return #removed
