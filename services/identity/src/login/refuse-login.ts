import { metrics } from '@overlay/process'
import type { NoteRefusal } from '@overlay/service'

/** Counts and logs a refused login, or a refused code of a second factor. */
export const refuseLogin: (note: NoteRefusal, ...facts: Parameters<NoteRefusal>) => void = (
  note,
  context,
  refused,
) => {
  metrics.loginRefused.inc({ method: refused.method, reason: refused.reason })
  note(context, refused)
}
