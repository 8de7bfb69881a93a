/** Durations moved to the platform, where screens may import them too. */
export { formatDuration } from '../platform/duration.js';
