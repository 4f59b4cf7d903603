-- Reads values that a task has of its steps, and of large ones only the first line: CheckpointsRole.view.
--
-- KEYS
--   1 task
-- ARGV
--   1 most: of values with more bytes only the first line is read
--   2 budget: fewer values are read when those have more bytes together
--   3… the fields
-- Returns
--   for each field that was read its value, or the first line with its end, and the bytes of the whole value; '' and -1 when it is missing

local call = redis.call
local most, budget = tonumber(ARGV[1]), tonumber(ARGV[2])
local found = {}

for i = 3, #ARGV do
  local size = call('HSTRLEN', KEYS[1], ARGV[i])
  budget = budget - size
  if budget < 0 and i > 3 then break end
  local value = call('HGET', KEYS[1], ARGV[i])
  if value and size > most then value = string.sub(value, 1, string.find(value, '\n', 1, true) or 0) end
  found[#found + 1] = value or ''
  found[#found + 1] = value and size or -1
end
return found
