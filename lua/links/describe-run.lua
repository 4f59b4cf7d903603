-- Reads a run: WorkflowsRole.run.
--
-- KEYS
--   1 run
-- ARGV
--   1 size: how many steps one command reads
-- Returns
--   packed: its counts and options; then name, state, place in the graph and error ('' when there is none) of each step;
--     empty when there is no run. shared/runs.lua says how they are written.

local call, size = redis.call, tonumber(ARGV[1])
local first = call('HMGET', KEYS[1], 'c', 'o')
if not first[1] then return '' end
local reply, names = { first[1], first[2] or '{}' }, {}
for _, field in ipairs(call('HKEYS', KEYS[1])) do
  if string.sub(field, 1, 2) == 's:' then names[#names + 1] = string.sub(field, 3) end
end
for from = 1, #names, size do
  local to = math.min(from + size - 1, #names)
  local fields = {}
  for i = from, to do
    local n = #fields
    fields[n + 1], fields[n + 2], fields[n + 3] = 's:' .. names[i], 'd:' .. names[i], 'e:' .. names[i]
  end
  local values = call('HMGET', KEYS[1], unpack(fields))
  for i = from, to do
    local at, n = 3 * (i - from), #reply
    reply[n + 1], reply[n + 2], reply[n + 3], reply[n + 4] = names[i], values[at + 1] or '', values[at + 2] or '', values[at + 3] or ''
  end
end
return cmsgpack.pack(reply)
