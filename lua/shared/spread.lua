-- Calls a command with many arguments, a thousand at a time, since Lua unpacks no more than about 8,000 at once; answers the
-- last reply. `key` comes before them; nil for commands such as DEL. A thousand is even: pairs of arguments stay together.
local function spread(command, key, list)
  local call, length, reply = redis.call, #list, nil
  for first = 1, length, 1000 do
    local last = first + 999
    if last > length then last = length end
    if key then
      reply = call(command, key, unpack(list, first, last))
    else
      reply = call(command, unpack(list, first, last))
    end
  end
  return reply
end
