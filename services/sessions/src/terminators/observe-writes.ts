import type { ChangeLog, RowChange } from '@overlay/platform/change-log'

/** The same change log. `observe` receives the changes of one kind after their commit. */
export const observeWrites = (
  changeLog: ChangeLog,
  kind: string,
  observe: (changes: readonly RowChange[]) => void,
): ChangeLog => ({
  ...changeLog,
  async write(context, work) {
    let changes: readonly RowChange[] = []
    const written = await changeLog.write(context, async (tx) => {
      const done = await work(tx)
      changes = done.changes // of the last attempt
      return done
    })
    const observed = changes.filter((change) => change.kind === kind)
    if (observed.length > 0) observe(observed)
    return written
  },
})
