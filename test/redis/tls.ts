import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';

/**
 * A self-signed certificate for `localhost` and 127.0.0.1, created in this directory. Fails without
 * openssl.
 */
export async function makeCertificate(dir: string): Promise<{ cert: string; key: string; ca: Buffer }> {
  const cert = join(dir, 'redis.crt');
  const key = join(dir, 'redis.key');
  const subject = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost,IP:127.0.0.1'];
  const args = [
    'req',
    '-x509',
    '-newkey',
    'rsa:2048',
    '-nodes',
    '-days',
    '2',
    '-keyout',
    key,
    '-out',
    cert,
    ...subject,
  ];
  try {
    await promisify(execFile)('openssl', args);
  } catch (cause) {
    throw new Error('the TLS tests need the openssl command (apt-get install openssl) and could not use it', { cause });
  }
  return { cert, key, ca: await readFile(cert) };
}
