// In one file, so that Nest, Fastify and the library are loaded once.
import './suite/application.js';
import './suite/boot.js';
import './suite/decoders.js';
import './suite/redaction.js';
import './suite/attacks/access.js';
import './suite/attacks/bodies.js';
import './suite/attacks/cross-site.js';
import './suite/attacks/every-route.js';
import './suite/attacks/heavy-payloads.js';
import './suite/attacks/oracles.js';
import './suite/attacks/lengths.js';
import './suite/attacks/paths.js';
import './suite/attacks/queues.js';
import './suite/attacks/sizes.js';
