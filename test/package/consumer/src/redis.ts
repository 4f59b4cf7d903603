import { sendOneLetter } from './app.js';

void sendOneLetter(process.env['REDIS_URL']!);
