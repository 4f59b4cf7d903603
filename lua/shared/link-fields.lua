-- The fields of `links`: what they say of tasks of this place. Part of links.lua.
--
-- Who watches a task: `r`, how many NULs follow and how long L.hint is (a byte each), those, a run of this place, \0, L.hint and the field of
-- the step in the run, when nobody else watches it; else a JSON list. Behind a `-` are those who know that it has failed; it is kept, and may
-- be run again. Links of steps that ended together are mostly the same up to the field.
do
  local call, try, byte, find, sub = redis.call, redis.pcall, string.byte, string.find, string.sub
  -- What the link of a step, and the id of a member of a batch begin with.
  local STEP, BATCH = byte('r'), byte('b')

  -- What `links` has of tasks, as far as it is known: see link-values.lua.
  L.values = {}

  -- Redis keeps a hash of up to 512 short values in a list, and searches it from end to end: no value is short.
  L.TOO_LONG = 65

  -- What a link of a step begins with, 3 bytes and the NULs, by the length of the hint and of what is missing to a link that is long enough.
  local ENOUGH, starts = L.TOO_LONG - 6, {}
  -- The least bytes of a hint: see L.hint.
  local HINT_SIZE = 22

  -- The link of the task of a step of this place. `hint`: L.hint.
  function L.step_link(run, step, hint)
    local size = #hint
    local missing = ENOUGH - #run - #step - size
    local kind = missing > 0 and missing * 256 + size or size
    local start = starts[kind]
    if not start then
      if missing < 0 then missing = 0 end
      start = 'r' .. string.char(missing, size) .. string.rep('\0', missing)
      starts[kind] = start
    end
    return start .. run .. '\0' .. hint .. 's:' .. step
  end

  -- The run, the field of the step, L.hint, and the position of the field; nil of what is no link of a step.
  function L.parse_link(link)
    local first, more, size = byte(link, 1, 3)
    if first ~= STEP or not size or size < HINT_SIZE then return nil end
    local stop = find(link, '\0', more + 4, true)
    if not stop then return nil end
    local at = stop + size + 1
    if at + 1 > #link then return nil end
    return sub(link, more + 4, stop - 1), sub(link, at), sub(link, stop + 1, at - 1), at
  end

  function L.result_of(id, result)
    if result and result ~= '' then return result end
    local stored = try('HGET', L.task_prefix .. id, 'result')
    return type(stored) == 'string' and stored or ''
  end

  -- The tasks of steps that are created now get these links, by position. A task of that id that was watched before is rare.
  function L.link_steps(ids, links, count)
    local values = L.values
    for first = 1, count, 1000 do
      local last = first + 999 < count and first + 999 or count
      local set, n, found = {}, 0, call('HMGET', L.links, unpack(ids, first, last))
      for i = first, last do
        local id, before = ids[i], found[i - first + 1]
        if values[id] ~= nil or before and byte(before) ~= STEP then
          L.add_link(id, links[i])
        else
          set[n + 1], set[n + 2] = id, links[i]
          n = n + 2
        end
      end
      for from = 1, n, 1000 do
        call('HSET', L.links, unpack(set, from, from + 999 < n and from + 999 or n))
      end
    end
    L.has_links = true
  end

  -- What each batch of these members is: what their ids begin with, and JSON.
  local function describe_batches(members)
    L.load_parts()
    local found, batches = {}, {}
    for i = 1, #members do
      local batch = L.batch_of(members[i])
      if batch and not found[batch] then
        found[batch] = true
        batches[#batches + 1] = batch .. '~'
        batches[#batches + 1] = cjson.encode({ { k = 'b', to = L.home_of(batch), batch = batch } })
      end
    end
    return batches[1] and cmsgpack.pack(batches) or ''
  end

  -- Who watches the tasks of these leases (score and id of each): once per batch, packed, what the ids of its members begin with, and JSON
  -- (empty when there is none); and what `links` has of each task, in order, if it has something of any (false: nothing). Node reads a list of
  -- texts as fast as packed ones of which it makes views, and to pack them costs more.
  function L.links_of(leases)
    local ids, count = {}, #leases / 2
    if count == 0 or not L.has_links then return '', {} end
    for i = 1, count do
      ids[i] = leases[2 * i]
    end
    local found, members, any = nil, {}, false
    for first = 1, count, 1000 do
      local last = first + 999 < count and first + 999 or count
      local page = call('HMGET', L.links, unpack(ids, first, last))
      for i = 1, last - first + 1 do
        if page[i] then
          any = true
        else
          local id = ids[first + i - 1]
          if byte(id) == BATCH then members[#members + 1] = id end
        end
        if found then found[first + i - 1] = page[i] end
      end
      found = found or page
    end
    return members[1] and describe_batches(members) or '', any and found or {}
  end
end
