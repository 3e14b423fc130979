import type { ExecResult, Problem } from "./api.js";

/** A request that the gateway refused, or could not carry out. */
export class AtollError extends Error {
  /** The kind of problem, for programs. */
  readonly code: string;
  /** Of HTTP; 0 if the gateway did not answer. */
  readonly status: number;
  /** What happened this time. */
  readonly detail: string;
  /** What to do about it; empty if nothing is known. */
  readonly hint: string;
  /** Finds the request in the gateway's log. */
  readonly requestId: string;
  /** What is wrong with single members, by JSON pointer. */
  readonly fields: Readonly<Record<string, string>>;

  constructor(problem: Partial<Problem>, options?: ErrorOptions) {
    const detail = problem.detail || problem.title || problem.code || "";
    const fields = Object.fromEntries((problem.errors ?? []).map((e) => [e.pointer, e.detail]));
    const parts = [detail, ...Object.entries(fields).map(([pointer, text]) => `${pointer}: ${text}`)];
    super(parts.join("; ") + (problem.hint ? ` (hint: ${problem.hint})` : ""), options);
    this.name = new.target.name;
    this.code = problem.code ?? "";
    this.status = problem.status ?? 0;
    this.detail = detail;
    this.hint = problem.hint ?? "";
    this.requestId = problem.requestId ?? "";
    this.fields = fields;
  }
}

/** A request that cannot be meant: fields says what is wrong with which member. */
export class InvalidRequestError extends AtollError {}

/** The token is missing, or does not allow this, or a policy does not. */
export class ForbiddenError extends AtollError {}

/** A sandbox, file, process or template that is not there. */
export class NotFoundError extends AtollError {}

/** The sandbox or the file is not in a state in which this is possible. */
export class ConflictError extends AtollError {}

/** A quota is used up, or there is too much at once: try again later. */
export class LimitError extends AtollError {}

/** No gateway answers, none could be started, or the connection broke. */
export class UnreachableError extends AtollError {
  constructor(detail: string, hint = "", cause?: unknown) {
    super({ code: "unreachable", detail, hint }, { cause });
  }
}

/** A command that failed and was run with check. */
export class CommandError extends AtollError {
  /** How it ended, with its output. */
  readonly result: ExecResult;

  constructor(result: ExecResult) {
    const said = (result.stderr || result.error || result.stdout).trim().slice(-500);
    super({ code: "command_failed", detail: `exit code ${result.exitCode}: ${said}` });
    this.result = result;
  }
}

const byStatus: Record<number, new (problem: Partial<Problem>) => AtollError> = {
  401: ForbiddenError,
  403: ForbiddenError,
  404: NotFoundError,
  409: ConflictError,
  412: ConflictError,
  422: InvalidRequestError,
  429: LimitError,
  507: LimitError,
};

/** @internal errorOf returns the error of a problem. */
export function errorOf(problem: Partial<Problem>): AtollError {
  return new (byStatus[problem.status ?? 0] ?? AtollError)(problem);
}
