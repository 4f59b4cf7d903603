-- Who watches the tasks of this place. Part of links.lua.
--
-- The task of a step of a run of this place has its link in its own hash, in the field `step`: `r`, how long L.hint is (a byte), the run,
-- \0, L.hint and the field of the step in the run. `running` has the runs with such tasks, by what the ids of these begin with. All other
-- watchers are in `links`, a JSON list for each task; then its hash has no link. Behind a `-` are those who know that the task has failed;
-- it is kept, and may be run again. Links of steps that ended together are mostly the same up to the field.
do
  local call, try, byte, find, sub = redis.call, redis.pcall, string.byte, string.find, string.sub
  -- What the link of a step, and the id of a member of a batch begin with.
  local STEP, BATCH = byte('r'), byte('b')

  -- The links of tasks, as far as they are known: see link-values.lua.
  L.values = {}

  -- Redis keeps a hash of up to 512 short values in a list, and searches it from end to end: no value of `links` is short.
  L.TOO_LONG = 65

  -- The least bytes of a hint: see L.hint.
  local HINT_SIZE = 22

  -- The link of the task of a step of this place. `hint`: L.hint.
  function L.step_link(run, step, hint)
    return 'r' .. string.char(#hint) .. run .. '\0' .. hint .. 's:' .. step
  end

  -- The run, the field of the step, and L.hint; nil of what is no link of a step.
  function L.parse_link(link)
    local first, size = byte(link, 1, 2)
    if first ~= STEP or not size or size < HINT_SIZE then return nil end
    local stop = find(link, '\0', 3, true)
    if not stop then return nil end
    local at = stop + size + 1
    if at + 1 > #link then return nil end
    return sub(link, 3, stop - 1), sub(link, at), sub(link, stop + 1, at - 1)
  end

  function L.result_of(id, result)
    if result and result ~= '' then return result end
    local stored = try('HGET', L.task_prefix .. id, 'result')
    return type(stored) == 'string' and stored or ''
  end

  -- What `links` has of the first `size` of these tasks, by id; nil when it has nothing of any.
  function L.read_links(ids, size)
    if not L.has_links then return nil end
    local watched, values = nil, L.values
    for first = 1, size, 1000 do
      local last = first + 999 < size and first + 999 or size
      local found = call('HMGET', L.links, unpack(ids, first, last))
      for i = first, last do
        local id, link = ids[i], found[i - first + 1]
        if link then
          watched = watched or {}
          watched[id] = link
          if values[id] == nil then values[id] = link end -- what was changed since is known
        end
      end
    end
    return watched
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
  -- (empty when there is none); and the link of each task, in order, if any has one (false: none). `steps`: the links that are in the
  -- hashes, in order, if this place has runs. Node reads a list of texts as fast as packed ones of which it makes views, and to pack them costs more.
  function L.links_of(leases, steps)
    local count = #leases / 2
    if count == 0 or not L.has_links then return '', steps or {} end
    local ids, members = {}, {}
    for i = 1, count do
      ids[i] = leases[2 * i]
    end
    local watched = L.read_links(ids, count)
    local found = steps or {}
    for i = 1, count do
      local id = ids[i]
      local link = watched and watched[id]
      if link then
        found[i] = link
      else
        if not steps then found[i] = false end
        if byte(id) == BATCH then members[#members + 1] = id end
      end
    end
    return members[1] and describe_batches(members) or '', (steps or watched) and found or {}
  end
end
