/** What a failure says to a person, on stderr. */
import { renderDiagnostics } from '../config/diagnostic.js';
import { unreachable, type Failure } from '../failure.js';

/** Shows a failure to a person: what, and what to do about it. */
export function renderFailure(failure: Failure): string {
  switch (failure.kind) {
    case 'diagnostics':
      return renderDiagnostics(failure.diagnostics);
    case 'usage':
    case 'environment':
    case 'locked':
      return failure.hint === undefined ? `giro: ${failure.message}` : `giro: ${failure.message}\n  ${failure.hint}`;
    default:
      return unreachable(failure);
  }
}
