-- What is sent to places: part of links.lua. A script that posts nothing does not make this.
do
  local call, try = redis.call, redis.pcall
  -- How many bodies one script works off; it leaves the others to the next delivery.
  local MOST_BODIES = 2000
  -- How many fields of a hash one script goes through.
  local FAN_OUT = 500

  local queue, head, tail = {}, 1, 0
  local posted, positions = L.posted, {}

  L.on, L.tell, L.due, L.audits, L.afterwards, L.grants, L.granted = {}, {}, {}, {}, {}, {}, {}

  local function store(to, field, text, data)
    call('HSET', L.outbox, field, cmsgpack.pack({ to, text, data, L.seconds }))
    local at = positions[field]
    if not at then
      at = #posted
      positions[field] = at
    end
    posted[at + 1], posted[at + 2], posted[at + 3], posted[at + 4] = to, field, text, data
  end

  -- `key` is the identity of what is sent there: a newer body takes the place of an older one that has not left.
  function L.post(to, key, body, data)
    if to == L.place then
      tail = tail + 1
      queue[tail] = { key, body, data or '' }
    else
      store(to, to .. ' ' .. key, cjson.encode(body), data or '')
    end
  end

  -- Leaves a body of this place to the next delivery.
  function L.defer(key, body, data)
    store(L.place, L.place .. ' ' .. key, cjson.encode(body), data or '')
  end

  -- Calls `tell` with some fields of a hash, which are deleted when `consume`, and leaves the others to the next delivery: `body`
  -- has the cursor, nil at first.
  function L.fan_out(hash, key, body, consume, tell)
    local page = try('HSCAN', hash, body.cursor or '0', 'COUNT', FAN_OUT)
    if page.err then return end
    for i = 1, #page[2], 2 do
      local known, value = pcall(cjson.decode, page[2][i])
      if known then tell(value) end
      if consume then call('HDEL', hash, page[2][i]) end
    end
    if page[1] == '0' then return end
    body.cursor = page[1]
    L.defer(key, body)
  end

  -- Works off what was posted to this place, and what that causes here; then lets those write who have waited for the rest.
  function L.work_posted()
    repeat
      while head <= tail do
        local key, body, data = unpack(queue[head])
        queue[head] = nil
        head = head + 1
        if head <= MOST_BODIES then
          L.guard(L.on[body.kind], body, data)
        else
          store(L.place, L.place .. ' ' .. key, cjson.encode(body), data)
        end
      end
      L.apply_successes()
      for i = 1, #L.afterwards do
        L.guard(L.afterwards[i])
      end
    until head > tail
  end

  function L.is_posted(field)
    return positions[field] ~= nil
  end
end
