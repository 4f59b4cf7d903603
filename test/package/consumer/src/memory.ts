import { sendOneLetter } from './app.js';

void sendOneLetter('memory');
