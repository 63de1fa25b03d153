import { execFileSync } from 'node:child_process'

/** The processes of these tests are the bundles. */
export function setup(): void {
  execFileSync('sh', ['-c', '. scripts/prepare.sh; prepare_build'], {
    cwd: `${import.meta.dirname}/..`,
    stdio: 'inherit',
  })
}
