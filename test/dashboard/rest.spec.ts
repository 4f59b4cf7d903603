// In one file, so that Nest, Fastify and the library are loaded once.
import './suite/actions.js';
import './suite/api.js';
import './suite/audit.js';
import './suite/openapi.js';
import './suite/keys.js';
import './suite/locks.js';
import './suite/outbox.js';
import './suite/prometheus.js';
