-- Names some keys of a fair queue, and how many tasks wait in their lines: FairKeysRole.sizes, one step.
--
-- KEYS
--   1… the source: fairRing, fairHeld, fairShares or fairSlots
-- ARGV
--   1 linePrefix
--   2 cursor
--   3 count: how many entries to read, roughly
--   4 sized: '1' also counts the tasks in their lines
-- Returns
--   the next cursor, and the keys packed as [name, number, …], or [name, …]; the same one may come twice

local call, try = redis.call, redis.pcall
local kind = call('TYPE', KEYS[1]).ok
if kind ~= 'zset' and kind ~= 'hash' then return { '0', cmsgpack.pack({}) } end
local reply = call(kind == 'zset' and 'ZSCAN' or 'HSCAN', KEYS[1], ARGV[2], 'COUNT', ARGV[3])
-- The keys of slots are the values of their hash.
local first, found = string.sub(KEYS[1], -6) == '_slots' and 2 or 1, {}
for i = first, #reply[2], 2 do
  local name = reply[2][i]
  found[#found + 1] = name
  if ARGV[4] == '1' then
    local size = try('ZCARD', ARGV[1] .. name)
    found[#found + 1] = type(size) == 'number' and size or 0
  end
end
return { reply[1], cmsgpack.pack(found) }
