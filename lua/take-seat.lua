-- Takes, keeps or leaves a seat of a crew, and says what the others do: SeatsRole.take. Leases end by the clock of Redis.
--
-- KEYS
--   1 crewCalled
--   2 crewCrowded
--   3… the seats, the first of them those of the maintainers
-- ARGV
--   1 server
--   2 sits: 1 to have a seat, 0 to leave it
--   3 ttl: milliseconds
--   4 maintainers: how many of the seats are theirs
--   5 crowdedTtl: milliseconds
--   6 channel: where standbys hear that a seat is free
-- Returns
--   the seat (0 for none), 1 when a maintainer has one, 1 when the crew is crowded, and who was called

local call = redis.call
local server, ttl, maintainers = ARGV[1], ARGV[3], tonumber(ARGV[4])
local values = call('MGET', unpack(KEYS))
local called, crowded = values[1] or '', values[2]

local own, free
local maintained = 0
for i = 3, #KEYS do
  if values[i] == server then
    own = own or i - 2
  elseif not values[i] then
    free = free or i - 2
  elseif i - 2 <= maintainers then
    maintained = 1
  end
end

if ARGV[2] == '0' then
  if own then
    call('DEL', KEYS[own + 2])
    if crowded then redis.pcall('PUBLISH', ARGV[6], 'seat') end
  end
  return { 0, maintained, crowded and 1 or 0, called }
end

-- A better seat of a maintainer is taken: the first one has duties of its own.
if own and (not free or free > maintainers or own < free) then
  call('PEXPIRE', KEYS[own + 2], ttl)
elseif free then
  -- A seat that cannot be set and seemed free has another type: reading it says so.
  if not call('SET', KEYS[free + 2], server, 'PX', ttl, 'NX') then call('GET', KEYS[free + 2]) end
  if own then call('DEL', KEYS[own + 2]) end
  own = free
elseif not crowded then
  call('SET', KEYS[2], '1', 'PX', ARGV[5])
  crowded = '1'
end
if own and own <= maintainers then maintained = 1 end
return { own or 0, maintained, crowded and 1 or 0, called }
