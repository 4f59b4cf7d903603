import { render } from 'preact';
import { App } from './app/app.js';
import { applyTheme } from './app/theme.js';
import './style/tokens.css';
import './style/base.css';
import './style/shell.css';
import './style/parts.css';
import './style/tables.css';
import './style/charts.css';
import './style/task.css';
import './style/runs.css';

applyTheme();
const root = document.getElementById('app');
if (root) render(<App />, root);
