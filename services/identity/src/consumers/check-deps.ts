import type { Source } from '@overlay/platform/change-log'
import type { ReferenceGrounds } from '@overlay/platform/maintenance'
import type { Logger } from 'pino'

/** What the checks of one followed service use. */
export interface CheckDeps extends ReferenceGrounds {
  readonly source: Source
  readonly log: Logger
}
