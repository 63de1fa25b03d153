import { answerAnyway, type History } from '@overlay/platform'
import type {
  ChangeServiceService,
  Context,
  EnrollmentWish,
  Methods,
  PkiServiceService,
  Written,
} from '@overlay/rpc'

/** What pki does for enrollments that are wanted here: it checks them before, and makes them from our changes. */
export type Enrollments = Pick<Methods<PkiServiceService>, 'checkEnrollment' | 'grantEnrollment'> &
  Pick<Methods<ChangeServiceService>, 'reach'>

/** A request may take 10 s: enough of them must be left for its answer. */
const WAIT_MS = 5000

/**
 * Returns a write when pki has made what it wants. It is committed: a pki that is away makes it afterwards, out of our
 * changes.
 */
export const granting =
  ({ db }: History, pki: Enrollments) =>
  async (written: Written, wish: EnrollmentWish, context: Context): Promise<Written> => {
    const { position } = written
    const latest = Date.now() + WAIT_MS
    const deadline = new Date(Math.min(latest, context.deadline?.getTime() ?? latest))
    await answerAnyway(db.schema, pki.grantEnrollment({ wish, position }, { ...context, deadline }))
    return written
  }
