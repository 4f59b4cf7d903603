-- Calls a command with many arguments, a thousand at a time, as Lua unpacks no more than about 8,000 at once. Returns the
-- last reply. `key` comes before the arguments; nil for commands such as DEL. A thousand is even: pairs stay together.
-- Takes the arguments of `list` from `first` to `last`; by default all.
local function spread(command, key, list, first, last)
  local call, reply = redis.call, nil
  last = last or #list
  for from = first or 1, last, 1000 do
    local to = from + 999
    if to > last then to = last end
    if key then
      reply = call(command, key, unpack(list, from, to))
    else
      reply = call(command, unpack(list, from, to))
    end
  end
  return reply
end
