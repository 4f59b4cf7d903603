// In one file, so that Nest, Fastify and the library are loaded once.
import './suite/application.js';
import './suite/boot.js';
import './suite/payloads.js';
import './suite/security.js';
