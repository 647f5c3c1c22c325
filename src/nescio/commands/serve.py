"""`nescio serve`: the service of one party."""

import argparse
import os
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from .._arrays import check_file
from .._device import describe, parse_device_list
from ..errors import ArgumentError, FileError
from . import Subparsers
from ._run.config import accept_config, config_text
from ._run.serve_options import add_options
from ._tables import table_files


def add_parser(commands: Subparsers) -> None:
    """Declares the command."""
    parser = commands.add_parser(
        "serve",
        help="serve tables for private lookups, as one of two parties",
        description="Serves tables for private lookups as one of two parties. Another operator "
        "must run the other party: anyone who sees both servers' queries learns the rows.",
    )
    add_options(parser)
    accept_config(parser)
    parser.set_defaults(run=partial(_run, parser))


def _run(parser: argparse.ArgumentParser, arguments: argparse.Namespace) -> int:
    if arguments.print_config:
        print(config_text(parser, arguments))
        return 0
    from ..service import Quotas, create_app  # noqa: PLC0415 - needed only when the command runs
    from ..service._connection import ConnectionLimits  # noqa: PLC0415
    from ..service._exchange import check_token  # noqa: PLC0415
    from ..service._operation import HangUps  # noqa: PLC0415
    from ..service._serve import Address, bind, serve  # noqa: PLC0415
    from ..service._served import check_name  # noqa: PLC0415
    from ._run import cluster  # noqa: PLC0415
    from ._run.access import access_of, bind_admin  # noqa: PLC0415
    from ._run.operation import check_operation, operation, speaker  # noqa: PLC0415
    from ._run.reload import Reloads  # noqa: PLC0415
    from ._run.tables import open_servers  # noqa: PLC0415

    hang_ups = HangUps()
    say = speaker(arguments.log)
    address = Address(arguments.host, arguments.port, arguments.tls_cert, arguments.tls_key)
    quotas = Quotas(
        max_keys=arguments.max_keys,
        max_body_bytes=arguments.max_body,
        max_answer_bytes=arguments.max_answer,
        max_waiting_keys=arguments.max_waiting,
        max_waiting_per_client=arguments.max_waiting_per_client,
        answer_seconds=arguments.timeout,
        batch_window=arguments.batch_window / 1000,
    )
    limits = ConnectionLimits(
        max_connections=arguments.max_connections,
        max_per_address=arguments.max_connections_per_address,
        write_seconds=quotas.write_seconds,
    )
    token = _token(arguments.admin_token_file)
    if token is not None:
        check_token(token)
    access = access_of(arguments)
    names = _names(arguments.tables, arguments.name)
    for name in names:
        check_name(name)
    cluster.check_cluster(arguments)
    tables = table_files(arguments, names)
    check_operation(arguments)  # before the slow part: reports what is wrong at once
    used = parse_device_list(arguments.device)
    if used and arguments.cluster is None:
        say(f"answers are made on {describe(used)}")
    reloads = Reloads(arguments, address, tables, quotas, used)
    with ExitStack() as closing:
        listener = closing.enter_context(bind(address))  # first: reports a port in use at once
        admin = bind_admin(arguments, address, say, closing)
        sharded = {}
        if arguments.cluster is not None:
            sharded = cluster.open_servers(arguments, tables, say, closing)
        servers = open_servers(arguments, tables, sharded, used, say, closing)

        def ready(url: str) -> None:
            say(f"party {arguments.party} serves {', '.join(servers)} on {url}")

        app = create_app(
            servers,
            party=arguments.party,
            quotas=quotas,
            admin_token=token,
            metrics=arguments.metrics,
            access=access,
            origins=arguments.cors,
            admin_apart=admin is not None,
        )
        cluster.watch_shards(sharded, app.state.readiness)
        cluster.report_waits(sharded, app.state.batcher)
        serve(
            app,
            address,
            listener,
            ready=ready,
            limits=limits,
            operation=operation(arguments, app, servers, reloads, hang_ups),
            admin=admin,
            until_stdin_closes=arguments.exit_with_stdin,
        )
    return 0


def _token(path: Path | None) -> str | None:
    """Reads the admin token from a file or the environment, which other users cannot list."""
    if path is None:
        return os.environ.get("NESCIO_ADMIN_TOKEN") or None
    check_file(path, "the file of the admin token, or the token in NESCIO_ADMIN_TOKEN")
    try:
        return path.read_text(encoding="utf-8-sig").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise FileError(f"the admin token cannot be read from {path}: {error}") from error


def _names(tables: list[Path], names: list[str]) -> list[str]:
    if names and len(names) != len(tables):
        raise ArgumentError(
            f"--name: found {len(names)} names for {len(tables)} tables: give one each"
        )
    chosen = names or [path.stem for path in tables]
    if len(set(chosen)) != len(chosen):
        raise ArgumentError(f"table names: found {', '.join(chosen)}, expected different names")
    return chosen
