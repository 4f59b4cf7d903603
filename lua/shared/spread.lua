-- Calls a command with many arguments, a thousand at a time, since Lua unpacks no more than about 8,000 at once.
-- `key` comes before them; nil for commands such as DEL. A thousand is even: pairs of arguments stay together.
local function spread(command, key, list)
  local length = #list
  for first = 1, length, 1000 do
    local last = math.min(first + 999, length)
    if key then
      redis.call(command, key, unpack(list, first, last))
    else
      redis.call(command, unpack(list, first, last))
    end
  end
end
