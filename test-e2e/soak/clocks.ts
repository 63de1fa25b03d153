/** The clocks of processes, which a signal moves. */
export interface Clocks {
  /** For the environment of processes whose clocks can jump: `NODE_OPTIONS`. */
  readonly nodeOptions: string
  /** Moves the clock of a process, or back to the right time. Returns a description. */
  jump(pid: number): string
}

const HOURS = 2
const SIGNAL = 'SIGUSR2'

/** Runs first in each process. Only the time of day jumps: timers and deadlines follow another clock. */
const program = `
const { Date: Right } = globalThis
let aheadMs = 0
globalThis.Date = class Date extends Right {
  constructor(...args) {
    if (args.length > 0) super(...args)
    else super(Right.now() + aheadMs)
  }
  static now() {
    return Right.now() + aheadMs
  }
}
let jumps = 0
process.on('${SIGNAL}', () => {
  aheadMs = aheadMs ? 0 : ${HOURS * 3_600_000} * (jumps++ % 2 ? -1 : 1)
})`

/** Processes jump by two hours, first ahead, the next time behind. */
export function openClocks(): Clocks {
  const nodeOptions = `--import=data:text/javascript;base64,${Buffer.from(program).toString('base64')}`
  return {
    nodeOptions,
    jump(pid) {
      process.kill(pid, SIGNAL)
      return `${HOURS} h`
    },
  }
}
