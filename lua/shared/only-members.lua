-- What exchange.lua needs of the engine while nobody watches a task of this place but as a member of a batch, and no more happens to
-- a batch than that further members succeed: most exchanges of a large batch. The engine costs more to make than all of that. Whatever
-- else holds is left to it. Part of linked.lua.
--
-- `settled` has the members of batches that are done and near each other, packed, as far as the caller knows: of each batch its id, how many,
-- and the bits of their numbers from which byte on, as parts.lua has them; empty when there are none.
do
  local call, try, byte = redis.call, redis.pcall, string.byte
  local MOST_BATCHES = 20
  local BATCH = byte('b')

  -- Of each batch of this place, false or the queue where it lives, as far as it was read; those whose members have ended.
  local homes, ends = {}, {}
  local opened

  local function leave()
    function L.prepare() end
    make_engine()
    L.open(unpack(opened))
  end

  -- As open of links.lua.
  function L.open(task_prefix, now, now_nanos)
    opened = { task_prefix, now, now_nanos }
    L.base = string.sub(task_prefix, 1, -3)
    local links = L.base .. 'links'
    if call('HLEN', links) > MOST_BATCHES then return leave() end
    local fields = call('HGETALL', links)
    for i = 1, #fields, 2 do
      if fields[i + 1] ~= '1' then return leave() end
      homes[fields[i]] = false
    end
  end

  -- Whether the part is as it must be: no member has died, and some are left when so many more have succeeded.
  local function take_part(batch, count, from, mask)
    local key = L.base .. 'part:' .. batch
    local part = homes[batch] == false and try('HMGET', key, 'home', 'made', 'ok', 'dead')
    if not part or part.err or not part[1] or (tonumber(part[4]) or 0) > 0 then return false end
    local ok = tonumber(part[3]) or 0
    homes[batch] = part[1]
    ends[#ends + 1] = { key = key, ok = ok, count = count, from = from, mask = mask }
    return ok + count < (tonumber(part[2]) or 0)
  end

  -- The first `size` of these tasks have ended, and have just succeeded when `plainly`: before the first write. The caller says which
  -- of them are members; when it does not know all, the engine finds out.
  function L.prepare(ids, size, plainly)
    if not plainly then return leave() end
    local list, members = settled ~= '' and cmsgpack.unpack(settled) or {}, 0
    for i = 1, #list, 4 do
      local count = tonumber(list[i + 1])
      if not take_part(list[i], count, tonumber(list[i + 2]), list[i + 3]) then return leave() end
      members = members + count
    end
    if members == size then return end
    for i = 1, size do
      if byte(ids[i]) == BATCH then members = members - 1 end
    end
    if members ~= 0 then return leave() end
  end

  -- Sets the bits of `mask`, `count` in all, that are set in `made`. Returns how many were not set before.
  local function set_bits(key, from, mask, count)
    local to = from + #mask - 1
    local made, ok = try('GETRANGE', key .. ':made', from, to), try('GETRANGE', key .. ':ok', from, to)
    if type(made) ~= 'string' or type(ok) ~= 'string' then return 0 end
    local asked, there, bytes = { byte(mask, 1, -1) }, { byte(made, 1, -1) }, { byte(ok, 1, -1) }
    local all, added = true, 0
    for i = 1, #asked do
      local more, before = asked[i], bytes[i] or 0
      if there[i] ~= 255 or before ~= 0 then
        more = bit.band(more, there[i] or 0, bit.bnot(before))
        all = all and more == asked[i]
      end
      asked[i], bytes[i] = more, before + more
    end
    if all then
      added = count
    else
      for i = 1, #asked do
        local more = asked[i]
        while more > 0 do
          added, more = added + 1, bit.band(more, more - 1)
        end
      end
    end
    if added > 0 then call('SETRANGE', key .. ':ok', from, string.char(unpack(bytes))) end
    return added
  end

  -- Nobody else watches them.
  function L.take_successes()
    for i = 1, #ends do
      local one = ends[i]
      local added = set_bits(one.key, one.from, one.mask, one.count)
      if added > 0 then call('HSET', one.key, 'ok', one.ok + added) end
    end
    return {}
  end

  function L.work() end

  -- As links_of of link-fields.lua: no task has a link of its own, and any may be a member.
  function L.links_of()
    local batches = {}
    for batch, home in pairs(homes) do
      home = home or try('HGET', L.base .. 'part:' .. batch, 'home')
      if type(home) == 'string' then
        batches[#batches + 1] = batch .. '~'
        batches[#batches + 1] = cjson.encode({ { k = 'b', to = home, batch = batch } })
      end
    end
    return batches[1] and cmsgpack.pack(batches) or '', {}
  end

  function L.parcels()
    return ''
  end
end
