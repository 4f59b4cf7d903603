-- Batches: the handlers of their bodies, part of links.lua.
do
  -- A member of a batch has ended. `number` is its own in the batch; `gone`: it is not kept.
  function L.member_ended(batch, number, ok, reason, gone) end

  -- The queue where the batch lives.
  function L.home_of(batch)
    local home = redis.pcall('HGET', L.base .. 'part:' .. batch, 'home')
    return type(home) == 'string' and home or L.place
  end
end
