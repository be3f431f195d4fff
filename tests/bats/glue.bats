#!/usr/bin/env bats
# AWS Glue, as moto plays it, with tables in S3, written by PyIceberg while they are mounted.

load mounts
load servers

setup_file() {
    start_server moto 0
}

teardown_file() {
    stop_servers
}

setup() {
    need_server moto
    ENDPOINT=$(server_url moto)
    MNT=$BATS_TEST_TMPDIR/mnt
    mkdir -p "$MNT"
    DB=db$BATS_TEST_NUMBER
    export AWS_EC2_METADATA_DISABLED=true
    cat > "$BATS_TEST_TMPDIR/properties" << EOF
glue.endpoint = $ENDPOINT
glue.region = eu-west-1
s3.endpoint = $ENDPOINT
s3.region = eu-west-1
client.access-key-id = AKIAtest
client.secret-access-key = berg-secret
EOF
}

pyiceberg() { # statements
    local properties
    mapfile -t properties < <(sed 's/ = /=/' "$BATS_TEST_TMPDIR/properties")
    "$SERVERS_PYTHON" "$ROOT/tests/servers/pyiceberg_catalog.py" glue type=glue warehouse=s3://lake "${properties[@]}" -- "$@"
}

new_table() {
    pyiceberg "
import boto3
boto3.client('s3', endpoint_url='$ENDPOINT', region_name='eu-west-1', aws_access_key_id='a', aws_secret_access_key='b').create_bucket(
    Bucket='lake', CreateBucketConfiguration={'LocationConstraint': 'eu-west-1'}) if $BATS_TEST_NUMBER == 1 else None" \
        "catalog.create_namespace('$DB')" "catalog.create_table('$DB.t', schema=rows(0, 1).schema).append(rows(0, 3))"
}

count_is() { # table's path, rows
    [ "$(sql "select count(*) from '$MNT/$1/current/${1##*/}.parquet'")" = "$2" ]
}

@test "databases and Iceberg tables of Glue, and what is committed to them" {
    new_table
    pyiceberg "catalog.glue.create_table(DatabaseName='$DB', TableInput={'Name': 'plain', 'TableType': 'EXTERNAL_TABLE'})"
    "$BERGFS" mount --refresh 500ms --properties "$BATS_TEST_TMPDIR/properties" glue: "$MNT"
    [ "$(ls "$MNT/$DB")" = t ]
    count_is "$DB/t" 3
    pyiceberg "t = catalog.load_table('$DB.t'); t.append(rows(3, 9)); t.delete('id = 4')"
    eventually 10 count_is "$DB/t" 8
    pyiceberg "catalog.drop_table('$DB.t')"
    gone() { [ -z "$(ls "$MNT/$DB")" ]; }
    eventually 10 gone
}

@test "one database of Glue may be the whole source; keys come from the environment" {
    new_table
    sed -i '/client\./d' "$BATS_TEST_TMPDIR/properties"
    AWS_ACCESS_KEY_ID=AKIAtest AWS_SECRET_ACCESS_KEY=berg-secret \
        "$BERGFS" mount --properties "$BATS_TEST_TMPDIR/properties" "glue:///$DB" "$MNT"
    [ "$(ls "$MNT")" = t ]
    count_is t 3
}

@test "Glue is found by its name in PyIceberg's configuration, with keys of a profile" {
    new_table
    mkdir "$BATS_TEST_TMPDIR/home"
    printf '[lake]\naws_access_key_id = AKIAtest\naws_secret_access_key = berg-secret\nregion = eu-west-1\n' > "$BATS_TEST_TMPDIR/home/keys"
    cat > "$BATS_TEST_TMPDIR/home/.pyiceberg.yaml" << EOF
catalog:
  lake:
    type: glue
    glue.endpoint: $ENDPOINT
    s3.endpoint: $ENDPOINT
    client.profile-name: lake
EOF
    PYICEBERG_HOME=$BATS_TEST_TMPDIR/home AWS_SHARED_CREDENTIALS_FILE=$BATS_TEST_TMPDIR/home/keys "$BERGFS" mount pyiceberg:lake "$MNT"
    count_is "$DB/t" 3
}

@test "a listing of Glue comes by pages and loads no table, and no secret is shown" {
    new_table
    pyiceberg "
for i in range(250):
    catalog.glue.create_table(DatabaseName='$DB', TableInput={'Name': f't{i}',
        'Parameters': {'table_type': 'ICEBERG', 'metadata_location': 's3://nowhere/metadata/1.metadata.json'}})"
    "$BERGFS" mount -vv --log-file "$BATS_TEST_TMPDIR/log" --properties "$BATS_TEST_TMPDIR/properties" glue: "$MNT"
    [ "$(ls "$MNT/$DB" | wc -l)" = 251 ]
    [ "$(counter metadata_read)" = 0 ]
    count_is "$DB/t" 3
    # shellcheck disable=SC2009
    ! { cat "$BATS_TEST_TMPDIR/log" "$MNT"/.bergfs/* /proc/mounts; ps -ef | grep -v grep; } | grep -e 'berg-secret'
}
