/** Makes the driver that a definition of `giro.toml` describes. */
import { unreachable } from '../failure.js';
import type { Clock } from '../platform/clock.js';
import type { Confinement } from '../platform/confinement.js';
import { childEnvironment } from '../platform/environment.js';
import type { DriverDefinition } from '../policy.js';
import { createCommandDriver } from './command.js';
import { unknownUsage } from '../usage.js';
import type { Driver, DriverRequest, EnvelopeContract } from './driver.js';
import { createScriptedDriver } from './scripted.js';

/** What drivers are made with. */
export interface DriverPorts {
  readonly clock: Clock;
  /** Root of the user's checkout, for relative programs and scripts. */
  readonly repository: string;
  /** giro's own environment; only the variables a driver names are taken from it. */
  readonly own: Readonly<Record<string, string | undefined>>;
  /** Limits what an agent starts. */
  readonly confinement?: Confinement;
}

/** Creates a driver. */
export function createDriver(definition: DriverDefinition, ports: DriverPorts): Driver {
  return withSystemTrouble(driverOf(definition, ports), ports.clock);
}

function driverOf(definition: DriverDefinition, ports: DriverPorts): Driver {
  const { clock, repository, confinement } = ports;
  switch (definition.kind) {
    case 'command':
      return createCommandDriver(definition, {
        clock,
        repository,
        environment: childEnvironment(ports.own, definition.env),
        ...(confinement === undefined ? {} : { confinement }),
      });
    case 'scripted':
      return createScriptedDriver(definition, { clock, repository });
    default:
      return unreachable(definition);
  }
}

/** What the system says when it has run out of something; nobody's work is to blame. */
const systemTrouble: ReadonlyMap<string, string> = new Map([
  ['ENOSPC', 'the disk is full'],
  ['EDQUOT', 'the disk quota is used up'],
  ['EROFS', 'the file system is read-only'],
  ['EIO', 'the disk has an error'],
  ['EMFILE', 'too many open files'],
  ['ENFILE', 'too many open files'],
]);

/** Makes an operation of such trouble; everything else that is thrown is a bug and goes on up. */
function withSystemTrouble(driver: Driver, clock: Clock): Driver {
  return {
    name: driver.name,
    async run<T>(request: DriverRequest, contract: EnvelopeContract<T>) {
      const startedAt = clock.monotonic();
      try {
        return await driver.run(request, contract);
      } catch (cause) {
        const code = cause instanceof Error && 'code' in cause ? String(cause.code) : '';
        const reason = systemTrouble.get(code);
        if (reason === undefined) throw cause;
        const durationMs = Math.round(clock.monotonic() - startedAt);
        return {
          result: { kind: 'operation', reason },
          ended: { kind: 'could-not-start', reason },
          durationMs,
          tail: '',
          usage: unknownUsage,
          model: null,
        };
      }
    },
  };
}
