import type { Product } from '@overlay/launcher/product'
import { type Report, rules } from './report.js'

/** Notices processes that have ended, since the launcher starts others in their place. */
export interface ProcessWatch {
  /** No process may have ended since the last call of a method. */
  check(): void
  /** Processes may have ended. */
  forget(): void
}

export function watchProcesses({ processes }: Pick<Product, 'processes'>, report: Report): ProcessWatch {
  const idsNow = (): Map<string, number> => new Map([...processes].map(([name, { pid }]) => [name, pid()]))
  let ids = idsNow()
  return {
    check() {
      const before = ids
      ids = idsNow()
      const ended = [...ids].filter(([name, pid]) => before.get(name) !== pid).map(([name]) => name)
      if (ended.length === 0) report.passed(rules.alive)
      else report.violated(rules.alive, { ended })
    },
    forget() {
      ids = idsNow()
    },
  }
}
