import type { Db } from '@overlay/store/postgres'
import sql from 'sql-template-tag'
import { COMMANDS_KEPT_SECONDS } from '../limits.js'

/** A command and its answer are JSON; this module does not read them. */
export interface StoredCommand {
  readonly id: string
  readonly command: unknown
}

export interface StoredAnswer {
  readonly id: string
  readonly answer: unknown
}

/** Leaves a command for a replica. Nothing happens if it is there already. */
export async function storeCommand(
  db: Db,
  replicaId: string,
  { id, command }: StoredCommand,
  limitMs: number,
): Promise<void> {
  await db.query(sql`
    insert into router_command (id, replica_id, command, ends_at)
    values (${id}, ${replicaId}, ${JSON.stringify(command)}, now() + make_interval(secs => ${limitMs / 1000}))
        on conflict (id) do nothing`)
}

/** Takes the commands for a replica. Each is taken once. */
export async function takeCommands(db: Db, replicaId: string): Promise<readonly StoredCommand[]> {
  const { rows } = await db.query<StoredCommand>(sql`
    update router_command set is_taken = true
     where replica_id = ${replicaId} and not is_taken and ends_at > now()
 returning id, command`)
  return rows
}

/** Leaves the answer to a command that this replica has executed. The command itself need not be there. */
export async function storeAnswer(
  db: Db,
  replicaId: string,
  { id, answer }: StoredAnswer,
  limitMs: number,
): Promise<void> {
  await db.query(sql`
    insert into router_command (id, replica_id, command, is_taken, answer, ends_at)
    values (${id}, ${replicaId}, 'null', true, ${JSON.stringify(answer)}, now() + make_interval(secs => ${limitMs / 1000}))
        on conflict (id) do update set is_taken = true, answer = excluded.answer`)
}

/** Takes the answers to these commands. */
export async function takeAnswers(db: Db, ids: readonly string[]): Promise<readonly StoredAnswer[]> {
  const { rows } = await db.query<StoredAnswer>(sql`
    delete from router_command where id = any(${ids}) and answer is not null returning id, answer`)
  return rows
}

/** Deletes commands whose time is over. */
export async function deleteOldCommands(db: Db): Promise<void> {
  await db.query(
    sql`delete from router_command where ends_at < now() - make_interval(secs => ${COMMANDS_KEPT_SECONDS})`,
  )
}
