import theme from 'vitepress/theme';
import './tables.css';

// oxlint-disable-next-line import/no-default-export -- VitePress reads it
export default theme;
